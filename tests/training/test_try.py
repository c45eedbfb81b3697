import dataclasses, pytest, sys
from keras_corrupt.training import pretrain
from keras_corrupt.training.callbacks import read_metrics
def test_try(config, presets, capfd):
    from pathlib import Path
    for lr in (1e-2, 0.3, 3.0, 30.0):
        c=dataclasses.replace(config, learning_rate=lr, steps=12, interval=3, output=config.output+str(lr))
        try:
            pretrain(c)
        except Exception as e:
            print(type(e), e)
        for r in read_metrics(Path(c.output)/"metrics.csv"):
            print("ROW",lr,{k:round(v,4) for k,v in r.items() if k in("step","gradient_norm","val_token_spread","val_rtd_auc","val_rtd_loss","val_mlm_loss")})
